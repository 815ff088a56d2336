#!/bin/sh
# Starts Redis or Valkey with the users of users.acl: start.sh valkey-server OPTIONS
# A Sentinel: USERS=sentinel-users.acl start.sh valkey-server sentinel.conf --sentinel
# It writes the users to USERS_FILE, readable only by the server's user. The compose file puts it on an in-memory file system.
set -eu
umask 077
users_file=${USERS_FILE:-/tmp/users.acl}

sh "$(dirname "$0")/render-users.sh" > "$users_file"
exec "$@" --aclfile "$users_file"
