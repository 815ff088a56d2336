#!/bin/sh
# The image of Postgres runs this once, when the volume is created: it makes the database and its owner, who is no superuser.
# The superuser is left without a password, so that it can log in only inside of the container.
psql --username=postgres --set=ON_ERROR_STOP=1 --set=password="$POSTGRES_PASSWORD" <<'SQL'
create role owner login createrole password :'password';
create database serpmill owner owner;
alter role postgres password null;
SQL
