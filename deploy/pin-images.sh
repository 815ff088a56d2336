#!/bin/sh
# Writes the digest behind the version of each container image, for you to commit:  npm run images:pin
# Asks a mirror that has the images of all registries under their names instead:    npm run images:pin -- mirror.example
# docs/operating/deploying.md#the-image
set -eu
cd "$(dirname "$0")/.."
mirror=${1:-}
files="Dockerfile docker-compose.yml deploy/quick.yml deploy/helm/values.yaml"

# An image with a version. One without a version is built here, or is a stage of the Dockerfile.
images=$(sed -nE 's/^(FROM| +image:) ([^ @]+:[^ @]+).*/\2/p' $files | awk '!seen[$0]++')
pinned= edits=
for image in $images; do
  asked=$image
  # A mirror has official images in the folder that Docker leaves out: postgres is library/postgres.
  if [ -n "$mirror" ]; then case "$image" in */*) asked=$mirror/$image ;; *) asked=$mirror/library/$image ;; esac; fi
  # Docker asks without pulling. Of an image for several platforms it tells the digest of the index.
  digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$asked" | grep -xE 'sha256:[0-9a-f]{64}') || {
    echo "There is no digest of $asked, so nothing was changed." >&2
    exit 1
  }
  pinned="$pinned$image@$digest
"
  edits="$edits
s#^((FROM| +image:) $image)(@sha256:[0-9a-f]{64})?( |\$)#\\1@$digest\\4#"
done
for file in $files; do
  after=$(sed -E "$edits" "$file")
  printf '%s\n' "$after" > "$file"
done
printf '%s' "$pinned"
