#!/bin/sh
# Starts Redis or Valkey with the users of users.acl: start.sh valkey-server OPTIONS
# The passwords come from the environment, under the names that users.acl has. What is written from both is readable only for
# the server's user, in USERS_FILE; the compose file has a file system in memory there.
set -eu
umask 077
users_file=${USERS_FILE:-/tmp/users.acl}

secret() {
  value=$(printenv "$1" || true)
  case $value in
    "" | *[!A-Za-z0-9_-]*)
      echo "$1: expected letters, digits, - or _" >&2
      exit 1
      ;;
  esac
  printf %s "$value"
}

render() {
  while read -r first rest; do
    case $first in
      "" | "#"*) ;;
      user) printf '\nuser %s' "$rest" ;;
      password)
        value=$(secret "$rest")
        printf ' >%s' "$value"
        ;;
      *) printf ' %s' "$first${rest:+ $rest}" ;;
    esac
  done
  echo
}

render < "$(dirname "$0")/users.acl" > "$users_file"
exec "$@" --aclfile "$users_file"
