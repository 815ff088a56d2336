#!/bin/sh
# Makes the running Redis or Valkey accept exactly the passwords in the files: accept-passwords.sh valkey-cli
# A user without a password cannot log in any more. Open connections stay open. It logs in as the user `rotation`, whose password
# only the server's own user can read.
set -eu
users_file=${USERS_FILE:-/tmp/users.acl}

password=$(sed -n 's/^user rotation on >\([0-9a-f]*\) .*/\1/p' "$users_file")
users=$(sh "$(dirname "$0")/render-users.sh")
changes=$(printf '%s\n' "$users" | sed -n '/^user rotation /d; / nopass /d; s/^user \([a-z]*\) on\(\( >[^ ]*\)*\) .*/ACL SETUSER \1 resetpass\2/p')
# On stdin, because arguments are visible in the container.
answers=$(printf 'AUTH rotation %s\n%s\n' "$password" "$changes" | "$@")
if [ -z "$changes" ] || printf '%s\n' "$answers" | grep -qv '^OK$'; then
  printf 'Redis did not accept the passwords:\n%s\n' "$answers" >&2
  exit 1
fi
