#!/bin/sh
# Prints users.acl, or the file of this folder in USERS, as an ACL file for Redis or Valkey. A password comes from the environment
# variable named there, or from the file in NAME_FILE, one password a line: during a rotation the user has two.
set -euf

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

# passwords NAME [DEFAULT]: prints each password as a rule.
passwords() {
  path=$(printenv "${1}_FILE" || true)
  if [ -n "$path" ]; then values=$(cat "$path"); else values=$(printenv "$1" || true); fi
  for value in ${values:-${2-}}; do
    case $value in
      *[!A-Za-z0-9_-]*)
        echo "$1: expected letters, digits, - or _" >&2
        exit 1
        ;;
    esac
    printf ' >%s' "$value"
  done
}

while read -r first rest; do
  case $first in
    "" | "#"*) ;;
    user) printf '\nuser %s' "$rest" ;;
    password)
      rules=$(passwords "$rest" "?")
      printf %s "$rules"
      ;;
    password-if-any)
      rules=$(passwords "$rest")
      printf %s "$rules"
      ;;
    random-password) printf ' >%s' "$(random)" ;;
    *) printf ' %s' "$first${rest:+ $rest}" ;;
  esac
done < "$(dirname "$0")/${USERS:-users.acl}"
echo
