#!/bin/sh
# Upgrades the running containers to this checkout, without an outage:   sh deploy/upgrade.sh
# Rolls back to the previous release, on the migrated database:          sh deploy/upgrade.sh rollback
# Replaces the containers, which then have changed settings and secrets: sh deploy/upgrade.sh restart
# docs/operating/upgrading.md
set -eu
cd "$(dirname "$0")/.."
# The proxy looks for new containers once a second, and checks them twice a second.
settle_seconds=5
# Docker calls a process unhealthy that is not ready after about a minute, but never one that ends and is started again in time.
healthy_seconds_max=120

# The new containers of the service that is being replaced, but for commands that an operator runs.
new_containers() {
  for container in $(docker compose ps --all --quiet "$service"); do
    [ "$(docker inspect --format '{{index .Config.Labels "com.docker.compose.oneoff"}}' "$container")" != True ] || continue
    case " $(echo "$old" | tr '\n' ' ') " in *" $container "*) ;; *) echo "$container" ;; esac
  done
}

# Waits until all new containers are healthy. `up --wait` would fail if an old one is not, which may be why it is being replaced.
new_are_healthy() {
  new=$(new_containers)
  for _ in $(seq "$healthy_seconds_max"); do
    case "$(docker inspect --format '{{.State.Health.Status}}' $new)" in
      *unhealthy*|"") return 1 ;;
      *starting*) sleep 1 ;;
      *) return 0 ;;
    esac
  done
  return 1
}

remove_new() {
  for container in $(new_containers); do docker rm --force "$container"; done
}

# The log of a container ends with it, and the runbook asks for the logs of the last day.
keep_log() {
  name="$service-$(date -u +%Y-%m-%dT%H-%M-%SZ)-$(echo "$1" | cut -c1-12)"
  (umask 077; mkdir -p logs && docker logs "$1" 2>&1 | nice gzip > "logs/$name.gz") || echo "the log of $1 was not kept" >&2
}

# Starts as many new containers as there are old ones. Once the new ones are healthy, stops the old ones one at a time. Interrupted
# before that, it removes the new ones; after that, it finishes. Otherwise the next run would take all of them for old ones.
replace() {
  service=$1
  # Otherwise compose would start a container that stopped, with the old image, instead of a new one.
  docker compose rm --force "$service"
  old=$(docker compose ps --quiet "$service")
  count=$(echo "$old" | wc -w)
  if [ "$count" -eq 0 ]; then
    echo "no $service is running: start everything with docker compose up --detach --wait" >&2
    exit 1
  fi
  echo "$service: $count more"
  trap 'echo "interrupted: removing the new $service; the old one stays" >&2; trap "" INT TERM HUP; remove_new; exit 130' INT TERM HUP
  if ! docker compose up --detach --no-deps --no-recreate --scale "$service=$((count * 2))" "$service" || ! new_are_healthy; then
    echo "the new $service is not healthy: removing it; the old one stays" >&2
    docker compose logs --tail 20 "$service" >&2 || true
    remove_new
    exit 1
  fi
  sleep "$settle_seconds"
  trap "" INT TERM HUP
  for container in $old; do
    echo "$service: stopping $container"
    docker stop "$container"
    keep_log "$container"
    docker rm "$container"
  done
  trap - INT TERM HUP
}

case "${1:-}" in
rollback)
  docker image tag serpmill:previous serpmill
  # The opposite order, and no migration: the previous release runs on the new schema.
  replace api
  replace worker
  ;;
restart)
  replace worker
  replace api
  ;;
"")
  # Tag the running image, not the newest: repeating a failed upgrade must not overwrite the rollback.
  serving=$(docker compose ps --quiet api | head -n 1)
  [ -z "$serving" ] || docker image tag "$(docker inspect --format '{{.Image}}' "$serving")" serpmill:previous
  docker compose build
  docker compose run --rm --no-deps migrate
  # New APIs may need what only new workers can do.
  replace worker
  replace api
  ;;
*)
  echo "expected restart, rollback or nothing, got $1" >&2
  exit 2
  ;;
esac
docker compose ps
