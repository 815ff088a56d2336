#!/bin/sh
# The image of Postgres runs this once, when the volume is created: it makes the database and its owner, who is no superuser.
# The superuser is left without a password, so that it can log in only inside of the container.
set -e
# From the address that the migration uses. Arguments of a command are visible in the container, so psql reads it itself.
password=$(sed -n 's|^postgres://owner:\([A-Za-z0-9_-]*\)@.*|\1|p' "$MIGRATION_DATABASE_URL_FILE")
if [ -z "$password" ]; then
  echo "MIGRATION_DATABASE_URL_FILE: expected a file with postgres://owner:PASSWORD@HOST/NAME, a password of letters, digits, - or _" >&2
  exit 1
fi
psql --username=postgres --set=ON_ERROR_STOP=1 <<SQL
\set password '$password'
create role owner login createrole password :'password';
create database serpmill owner owner;
alter role postgres password null;
SQL
