#!/bin/sh
# Starts Redis or Valkey with the users of users.acl: start.sh valkey-server OPTIONS
# What is written of them is readable only for the server's user, in USERS_FILE; the compose file has a file system in memory there.
set -eu
umask 077
users_file=${USERS_FILE:-/tmp/users.acl}

sh "$(dirname "$0")/render-users.sh" > "$users_file"
exec "$@" --aclfile "$users_file"
