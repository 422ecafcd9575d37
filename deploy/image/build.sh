#!/bin/sh
# Builds the image with buildah, without a Docker engine:
#   deploy/image/build.sh [BASE [NAME [FOLDER]]]
# BASE is an image with Node.js 24 or later and npm, NAME the name of the result. FOLDER has the
# package of a release (uas-gateway-*.tgz), which is then used instead of a build of this checkout.
set -eu
base=${1:-docker.io/library/node:26-bookworm-slim}
name=${2:-uas-gateway}
folder=${3:-}
cd -- "$(dirname -- "$0")/../.."
# HEALTHCHECK is a part of Docker's format only.
set -- --format docker --isolation "${BUILDAH_ISOLATION:-chroot}" --build-arg "BASE=$base"
[ -z "$folder" ] || set -- "$@" --build-context "package=$folder"
exec buildah build "$@" --network host --file deploy/Dockerfile --tag "$name" .
