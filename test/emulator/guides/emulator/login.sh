#!/bin/sh
# Logs in, takes the service down, refreshes through the outage, and revokes. Usage: login.sh http://127.0.0.1:4000
set -eu
emulator=$1
callback=http://localhost:3000/callback
client='"client_id":"sample-client-id","client_secret":"sample-client-secret"'

control() { curl -sf -X "$1" "$emulator/_emulator/$2" ${3:+--data "$3"} >/dev/null; }
token() { curl -s -w '\n%{http_code}\n' -H 'content-type: application/json' --data "{$client,$1}" "$emulator/oauth/token"; }
status() { tail -n 1; }
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

control POST reset
redirect=$(curl -s -o /dev/null -w '%{redirect_url}' "$emulator/oauth/authorize" \
  --data-urlencode "redirect_uri=$callback" \
  --data 'client_id=sample-client-id&response_type=code&scope=project&user=1&decision=approve')
code=${redirect#*code=}
refresh=$(token "\"grant_type\":\"authorization_code\",\"redirect_uri\":\"$callback\",\"code\":\"$code\"" | field refresh_token)

control POST faults '{"endpoint":"token","status":503}'
echo "during the outage: $(token "\"grant_type\":\"refresh_token\",\"refresh_token\":\"$refresh\"" | status)"
refresh=$(token "\"grant_type\":\"refresh_token\",\"refresh_token\":\"$refresh\"" | field refresh_token)
echo "after the outage: ${refresh:+refreshed}"

control POST revoke '{"userId":"1"}'
echo "after the revocation: $(token "\"grant_type\":\"refresh_token\",\"refresh_token\":\"$refresh\"" | status)"
