#!/bin/sh
# Gives each password of docker compose that .env does not have a random value. Creates .env from .env.example if it is missing.
set -eu
umask 077
cd "$(dirname "$0")/.."
[ -e .env ] || cat .env.example > .env
for name in POSTGRES_PASSWORD POSTGRES_PROCESS_PASSWORD REDIS_API_PASSWORD REDIS_WORKER_PASSWORD; do
  if grep -q "^$name=." .env; then continue; fi
  password=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
  sed "s/^\(# \)\{0,1\}$name=\$/$name=$password/" .env > .env.unfinished
  grep -q "^$name=." .env.unfinished || echo "$name=$password" >> .env.unfinished
  mv .env.unfinished .env
done
