<?php
// Reads a webhook body per line, parses it, writes it as the specification says, and prints its signature.
$flags = JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES;
while (($line = fgets(STDIN)) !== false) {
    $text = json_encode(json_decode($line, true), $flags);
    echo hash_hmac('sha256', $text, $argv[1]), "\n";
}
