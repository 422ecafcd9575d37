"""Reads a webhook body per line, parses it, writes it as the specification says, and prints its signature."""
import hashlib, hmac, json, sys

secret, sort = sys.argv[1].encode(), "sort" in sys.argv[2:]
for line in sys.stdin.buffer:
    payload = json.loads(line)
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False, sort_keys=sort)
    print(hmac.new(secret, text.encode(), hashlib.sha256).hexdigest())
