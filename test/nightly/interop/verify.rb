# Reads a webhook body per line, parses it, writes it as the specification says, and prints its signature.
require "json"
require "openssl"
STDIN.set_encoding("UTF-8")
STDIN.each_line { |line| puts OpenSSL::HMAC.hexdigest("SHA256", ARGV[0], JSON.generate(JSON.parse(line))) }
