#!/bin/sh
# Creates the secrets of docker compose, one file each, in the folder SECRETS_FOLDER of .env (./secrets). Passwords are random.
# Moves keys of third parties from .env there. Safe to repeat: it never changes a file that has a secret.
#
# Only its owner can enter the folder. The files are world-readable, because compose mounts each with its mode and owner, and each
# container runs as its own user.
set -eu
umask 077
cd "$(dirname "$0")/.."
[ -e .env ] || cat .env.example > .env

value_of() { sed -n "s/^$1=//p" .env | tail -n 1 | tr -d '\r'; }

# edit SCRIPT: changes .env. Never put a secret in the script: all users of the machine can see arguments.
edit() {
  sed "$1" .env > .env.unfinished
  mv .env.unfinished .env
}

# append LINE: to .env, whose last line may have no end.
append() {
  [ -z "$(tail -c 1 .env)" ] || echo >> .env
  echo "$1" >> .env
}

write() {
  printf %s "$2" > "$folder/$1.unfinished"
  chmod 644 "$folder/$1.unfinished"
  mv "$folder/$1.unfinished" "$folder/$1"
}

# create FILE BEFORE AFTER: creates a file with a random password between two texts, unless the file has a secret.
create() {
  [ -s "$folder/$1" ] || write "$1" "$2$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')$3
"
}

folder=$(value_of SECRETS_FOLDER)
if [ -z "$folder" ]; then
  folder=./secrets
  edit "/^\(# \)\{0,1\}SECRETS_FOLDER=/d"
  append "SECRETS_FOLDER=$folder"
fi
mkdir -p "$folder"
chmod 700 "$folder"

create MIGRATION_DATABASE_URL postgres://owner: @postgres:5432/serpmill
create DATABASE_URL postgres://serpmill_app: @postgres:5432/serpmill
for name in API WORKER; do
  create "REDIS_${name}_PASSWORD" "" ""
  [ -s "$folder/REDIS_URL_$name" ] && continue
  user=$(echo "$name" | tr '[:upper:]' '[:lower:]')
  write "REDIS_URL_$name" "redis://$user:$(tail -n 1 "$folder/REDIS_${name}_PASSWORD")@redis:6379
"
done

# Keys from third parties. The file must exist even if it is empty, or compose could not mount it.
for name in SERPAPI_API_KEY SERPER_API_KEY DATAFORSEO_LOGIN DATAFORSEO_PASSWORD SEARCHAPI_API_KEY STRIPE_SECRET_KEY STRIPE_WEBHOOK_SECRET OTEL_EXPORTER_OTLP_HEADERS; do
  value=$(value_of "$name")
  case $value in *[\"\']* | *" #"*)
    echo "$name in .env: expected the value alone, without quotes and without a comment" >&2
    exit 1
    ;;
  esac
  if [ -n "$value" ]; then
    if [ -s "$folder/$name" ]; then
      echo "$name is in .env, and $folder/$name has a secret too: remove one of them" >&2
      exit 1
    fi
    write "$name" "$value
"
    edit "s/^$name=.*/$name=/"
  fi
  [ -e "$folder/$name" ] || write "$name" ""
  if [ -s "$folder/$name" ] && [ -z "$(value_of "${name}_FILE")" ]; then
    append "${name}_FILE=/run/secrets/$name"
  fi
done

[ -n "$(value_of SERP_PROVIDERS)" ] || echo "now set SERP_PROVIDERS in .env: docs/operating/deploying.md" >&2
