#!/bin/sh
# The Postgres image runs this once, when the volume is created. It creates the database and its owner, who is not a superuser. It
# removes the superuser's password, so that the superuser can log in only inside the container.
set -e
# From the address that the migration uses. psql reads it itself, because arguments are visible in the container.
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
