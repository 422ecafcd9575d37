# Reads a webhook body per line, parses it, writes it as the specification says, and prints its signature.
use strict;
use warnings;
use JSON::PP;
use Digest::SHA qw(hmac_sha256_hex);
my $json = JSON::PP->new->utf8->canonical;
binmode STDIN;
while (my $line = <STDIN>) {
    chomp $line;
    print hmac_sha256_hex($json->encode($json->decode($line)), $ARGV[0]), "\n";
}
