# A client in Perl, written from docs/protocol.md alone: loads, waits, trains, says how far it is.
use strict;
use warnings;
use IO::Socket::UNIX;
use JSON::PP;
use Socket;

my %kind = (hello => 1, welcome => 2, failure => 5, report => 6, order => 7);
my $yard = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $ENV{TRAINYARD_SOCKET}) or die "connect: $!";
$yard->autoflush(1);

sub tell_yard {
    my ($kind, $fields) = @_;
    my $text = encode_json($fields);
    print {$yard} pack('a4 C C v Q< Q< V V V V Q<', 'TYRD', 1, $kind{$kind}, 0, 0, 0, 0, length $text, 0, 0, 0), $text;
}

sub hear {
    my ($wanted) = @_;
    read($yard, my $prefix, 48) == 48 or die "the yard has closed the connection\n";
    my ($magic, $version, $kind, undef, undef, undef, undef, $length) = unpack 'a4 C C v Q< Q< V V', $prefix;
    die "this is not the protocol\n" if $magic ne 'TYRD' || $version != 1;
    my $text = '{}';
    if ($length) { read($yard, $text, $length) == $length or die "half a frame\n"; }
    my $fields = decode_json($text);
    die "refused: $fields->{error}\n" if $kind == $kind{failure} || $kind != $kind{$wanted};
    return $fields;
}

tell_yard('hello', {role => 'task', version => 1, program => 'perl', token => $ENV{TRAINYARD_TOKEN}});
my $welcome = hear('welcome');
die "refused: $welcome->{error}\n" unless $welcome->{ok};
tell_yard('report', {say => 'loading'});
my @data = (1 .. 10);
tell_yard('report', {say => 'loaded'});
my $order = hear('order');
my $sum = 0;
for my $i (0 .. $#data) {
    $sum += $data[$i];
    tell_yard('report', {say => 'progress', fraction => ($i + 1) / @data, values => {sum => $sum}});
}
open my $file, '>', $ENV{TRAINYARD_RESULT} or die "result: $!";
print {$file} encode_json({sum => $sum, device => $order->{device}});
close $file or die "result: $!";
tell_yard('report', {say => 'trained'});
