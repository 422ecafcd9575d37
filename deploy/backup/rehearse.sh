#!/bin/sh
# Rehearses a restore: puts a backup of the database into a new database, and audits this copy.
# No gateway is started, so no task and no webhook of the copy runs; the database is only read.
#   DATABASE_URL=… deploy/backup/rehearse.sh [FILE]
# FILE is a backup by `pg_dump --format=custom`. By default the script makes one. Variables:
#   UAS_MASTER_KEY  checks too that this key fits the backup
#   EXPECT          a checkpoint that was noted elsewhere, NUMBER:HASH, which the backup must have.
#                   Default without FILE: the newest one before the backup
#   COPY_SERVER     another server for the copy, as postgresql://user@host/postgres. Its user, by
#                   default that of DATABASE_URL, must be allowed to create databases
#   KEEP=1          keeps the copy
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
: "${DATABASE_URL:?set it to the address of the database that is backed up}"
server=${COPY_SERVER:-$DATABASE_URL}
name=uas_rehearsal_$(date +%Y%m%d_%H%M%S)_$$
copy=$(printf %s "$server" | sed -E "s#^(postgres(ql)?://[^/?]*)(/[^?]*)?#\1/$name#")
work=$(mktemp -d)
made=''

clean() {
  cd /
  rm -rf "$work"
  [ -z "$made" ] || [ -n "${KEEP:-}" ] || psql -qX "$server" -c "drop database $name"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

ask() { psql -XAtq -v ON_ERROR_STOP=1 "$1" -c "$2"; }
say() { printf '%-12s%s\n' "$1" "$2"; }
seconds() { echo "$(($(date +%s) - $1)) s"; }

newest="select n || ':' || hash from ledger_checkpoint order by n desc limit 1"
live=$(ask "$DATABASE_URL" "$newest")
say database "newest checkpoint ${live:-none}"

file=${1:-}
expect=${EXPECT:-}
if [ -z "$file" ]; then
  start=$(date +%s)
  file=$work/uas.dump
  pg_dump --format=custom --file="$file" "$DATABASE_URL"
  say backup "$(seconds "$start"), $(wc -c <"$file") bytes"
  expect=${expect:-$live}
fi

start=$(date +%s)
ask "$server" "create database $name"
made=1
pg_restore --no-owner --exit-on-error --dbname="$copy" "$file"
say restore "$(seconds "$start"), $(ask "$copy" 'select pg_database_size(current_database())') bytes in $name"
say checkpoint "$(ask "$copy" "$newest")"
say content "$(ask "$copy" "select (select count(*) from account) || ' accounts, '
  || (select coalesce(sum(available + held), 0) / 1000000000.0 from balance)::numeric(40, 9) || ' USD, '
  || (select count(*) from open_hold) || ' open holds'")"

# The processes of the copy's open holds do not run. Each hold would be a finding, and a hundred of
# them would hide others. After a real restore, the first gateway frees these holds.
ask "$copy" "update node set seen_time = now();
  update open_hold set expires_at = greatest(expires_at, now() + interval '1 day')"

# An empty data folder and an environment without other variables: nothing leads to a gateway.
start=$(date +%s)
set -- ledger audit --full
[ -z "$expect" ] || set -- "$@" --expect "$expect"
cd "$work"
env -i PATH="$PATH" DATABASE_URL="$copy" UAS_DATA_DIR="$work/data" \
  ${UAS_MASTER_KEY:+"UAS_MASTER_KEY=$UAS_MASTER_KEY"} "$root/uas" "$@" >"$work/audit" || {
  cat "$work/audit"
  say failed "the copy must not be used: docs/backup.md says what to do"
  exit 1
}
say audit "$(seconds "$start"), $(cat "$work/audit")"
[ -z "$expect" ] || say expected "$expect is in the copy"
say ok "this backup can be restored"
