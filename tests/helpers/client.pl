#!/usr/bin/env perl
# A client in Perl 5 and its core modules, written from docs/reference/client-programs.md. Its argument is the folder of
# the vectors: it runs each of them, and ends with 0 if all give their report from exactly their bytes. Where a file
# has a whole definition, with a digest, a `secret` is the device's own, and the `label` of a vector is checked too.
use strict;
use warnings;
no warnings 'portable';    # of 64-bit constants
use Digest::SHA qw(sha256 sha256_hex);
use Encode qw(encode_utf8);
use JSON::PP ();
use Math::BigInt;
use POSIX ();
use Unicode::Normalize qw(NFC);

sub whole { Math::BigInt->new("$_[0]") }    # of an expression: no limit of size
sub word { 0 + "$_[0]" }                    # of a draw or a hash: exact below 2**64
my $two_to_64 = whole(2)**64;

# ---- BLAKE2b (RFC 7693) and SHAKE (FIPS 202), on native words of 64 bits

sub rotate { my ($x, $n) = @_; $n ? ($x << $n) | ($x >> (64 - $n)) : $x }

my @iv = (
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
);
my @sigma = map { [map { hex } split //] } qw(
    0123456789abcdef ea489fd61c02b753 b8c052fdae367194 7931dcbe265a40f8 905724afe1bc683d
    2c6a0b834d75fe19 c51fed4a0763928b db7ec13950f4862a 6fe9b308c2d714a5 a2847615fb9e3cd0);
my @mixed = ([0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
             [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]);

sub plus { use integer; my $sum = 0; $sum += $_ for @_; $sum }    # modulo 2**64

sub blake2b {
    my ($data, $size, %with) = @_;
    my ($key, $person) = map { $_ // '' } @with{qw(key person)};
    my @parameters = unpack 'Q<8', pack 'C4 x44 a16', $size, length $key, 1, 1, $person;
    my @h = map { $iv[$_] ^ $parameters[$_] } 0 .. 7;
    $data = pack('a128', $key) . $data if length $key;
    my $at = 0;
    do {
        my @m = unpack 'Q<16', pack 'a128', substr $data, $at, 128;
        $at += 128;
        my $last = $at >= length $data;
        my @v = (@h, @iv);
        $v[12] ^= $last ? length $data : $at;
        $v[14] ^= ~0 if $last;
        for my $round (0 .. 11) {
            my @s = @{ $sigma[$round % 10] };
            for my $places (@mixed) {
                my ($p, $q, $r, $s) = @$places;
                for my $turns ([32, 40], [48, 1]) {
                    $v[$p] = plus($v[$p], $v[$q], $m[shift @s]);
                    $v[$s] = rotate($v[$s] ^ $v[$p], $turns->[0]);
                    $v[$r] = plus($v[$r], $v[$s]);
                    $v[$q] = rotate($v[$q] ^ $v[$r], $turns->[1]);
                }
            }
        }
        $h[$_] ^= $v[$_] ^ $v[$_ + 8] for 0 .. 7;
    } while $at < length $data;
    return substr pack('Q<8', @h), 0, $size;
}

# Each place of Keccak's lanes has where it moves to, and how far it turns; each round has its constant.
my (@moves, @constants);
{
    my ($x, $y, $turn) = (1, 0, 0);
    for my $t (1 .. 24) {
        $turn = ($turn + $t) % 64;
        my $from = $x + 5 * $y;
        ($x, $y) = ($y, (2 * $x + 3 * $y) % 5);
        push @moves, [$from, $x + 5 * $y, $turn];
    }
    my $register = 1;
    for my $round (0 .. 23) {
        for my $j (0 .. 6) {
            $constants[$round] //= 0;
            $constants[$round] |= 1 << (2**$j - 1) if $register & 1;
            $register <<= 1;
            $register ^= 0x171 if $register & 0x100;
        }
    }
}

sub keccak {
    my @a = @_;
    for my $constant (@constants) {
        my @c = map { $a[$_] ^ $a[$_ + 5] ^ $a[$_ + 10] ^ $a[$_ + 15] ^ $a[$_ + 20] } 0 .. 4;
        my @d = map { $c[($_ + 4) % 5] ^ rotate($c[($_ + 1) % 5], 1) } 0 .. 4;
        $a[$_] ^= $d[$_ % 5] for 0 .. 24;
        my @b = ($a[0]);
        $b[$_->[1]] = rotate($a[$_->[0]], $_->[2]) for @moves;
        for my $y (0, 5, 10, 15, 20) {
            $a[$y + $_] = $b[$y + $_] ^ (~$b[$y + ($_ + 1) % 5] & $b[$y + ($_ + 2) % 5]) for 0 .. 4;
        }
        $a[0] ^= $constant;
    }
    return @a;
}

sub shake_words {    # the first n 8-byte words of SHAKE-128 (rate 168) or SHAKE-256 (rate 136)
    my ($rate, $data, $n) = @_;
    $data .= "\x1f";
    $data .= "\0" x (-length($data) % $rate);
    substr($data, -1) |= "\x80";
    my @a = (0) x 25;
    for my $block (unpack "(a$rate)*", $data) {
        my @words = unpack 'Q<*', $block;
        $a[$_] ^= $words[$_] for 0 .. $#words;
        @a = keccak(@a);
    }
    my @out;
    while (@out < $n) {
        push @out, @a[0 .. $rate / 8 - 1];
        @a = keccak(@a);
    }
    return @out[0 .. $n - 1];
}

# ---- what is drawn from the stream

my ($stream, $position);

sub bytes {
    my ($n) = @_;
    die "the stream is too short\n" if $position + $n > length $stream;
    return substr $stream, ($position += $n) - $n, $n;
}

sub bits {    # n bits of probability t/2**64; with `always`, a byte is read whatever t is
    my ($t, $n, $always) = @_;
    return ($t > 0 ? 1 : 0) x $n if !$always && ($t == 0 || $t == $two_to_64);
    my $top = word($t >> 56);
    my $low = word($t & ((whole(1) << 56) - 1));
    my @read = unpack 'C*', bytes($n);
    return map {
        $_ != $top ? ($_ < $top ? 1 : 0)
            : $low || $always ? (unpack('Q<', bytes(7) . "\0") < $low ? 1 : 0)
            : 0
    } @read;
}

sub width { my ($n) = @_; my $bits = 0; $bits++ while $bits < 64 && $n >> $bits; $bits }

sub cut_words {    # n words as wide as the bound needs, each cut to the bits that its own bound - 1 has
    my ($widest, @bounds) = @_;
    my $bits = width($widest - 1);
    my $size = (grep { 8 * $_ >= $bits } 1, 2, 4, 8)[0];
    my $read = bytes($size * @bounds);
    my @words = map { unpack 'Q<', $_ . "\0" x 8 } unpack "(a$size)*", $read;
    return map { $words[$_] & ((1 << width($bounds[$_] - 1)) - 1) } 0 .. $#bounds;
}

sub belows {
    my ($b, $n) = (word($_[0]), $_[1]);
    my @drawn;
    push @drawn, grep { $_ < $b } cut_words($b, ($b) x ($n - @drawn)) while @drawn < $n;
    return @drawn;
}

sub subset {
    my ($m, $n) = @_;
    if (2 * $n > $m) {
        my %left_out = map { $_ => 1 } subset($m, $m - $n);
        return grep { !$left_out{$_} } 0 .. $m - 1;
    }
    my @set = sort { $a <=> $b } belows($m, $n);
    while (my @again = grep { $set[$_] == $set[$_ - 1] } 1 .. $n - 1) {
        @set[@again] = belows($m, scalar @again);
        @set = sort { $a <=> $b } @set;
    }
    return @set;
}

sub shuffle {
    my @vector = @_;
    for my $place (reverse 1 .. $#vector) {
        my ($other) = belows($place + 1, 1);
        @vector[$place, $other] = @vector[$other, $place];
    }
    return @vector;
}

sub geometric {
    my ($t) = @_;
    my $ones = 0;
    $ones++ while (bits($t, 1))[0];
    return $ones;
}

sub deviate { [unpack 'Q<', bytes(8)] }

sub less {    # of two deviates, of which as many words are read as it takes
    my ($one, $other) = @_;
    for (my $i = 0; ; $i++) {
        for my $deviate ($one, $other) { push @$deviate, unpack 'Q<', bytes(8) if $i > $#$deviate }
        return $one->[$i] < $other->[$i] if $one->[$i] != $other->[$i];
    }
}

sub signed { my ($magnitude, $negative) = @_; $negative ? -$magnitude - 1 : $magnitude }

sub laplace {
    my ($places) = @_;
    for (my $whole = 0; ; $whole++) {
        my $first = deviate();
        my ($last, $length) = ($first, 1);
        while (less(my $next = deviate(), $last)) { $last = $next; $length++ }
        next if $length % 2 == 0;
        my $magnitude = (whole($whole) << $places) + ($first->[0] >> (64 - $places));
        return signed($magnitude, bits(whole(1) << 63, 1));
    }
}

sub halves {    # H: bits that are true with probability exp(-1/2)
    my ($n) = @_;
    my @true = (1) x $n;
    my @last = map { deviate() } 1 .. $n;
    my @falling = grep { $last[$_][0] < 1 << 63 } 0 .. $n - 1;
    while (@falling) {
        my %next = map { $_ => deviate() } @falling;
        $true[$_] ^= 1 for @falling;
        @falling = grep { less($next{$_}, $last[$_]) } @falling;
        @last[@falling] = @next{@falling};
    }
    return @true;
}

sub all_succeed {    # the slots of those that succeed as often as they need
    my ($try, $need, @slots) = @_;
    my %left = map { $_ => $need->{$_} } @slots;
    while (my @open = grep { $left{$_} > 0 } @slots) {
        my %true;
        @true{@open} = $try->(@open);
        @slots = grep { $left{$_} == 0 || $true{$_} } @slots;
        $left{$_}-- for @open;
    }
    return @slots;
}

sub normal {
    my ($places) = @_;
    while (1) {
        my %k = map { $_ => 0 } 0 .. 9;
        my @slots = my @growing = 0 .. 9;
        while (@growing) {
            my @true = halves(scalar @growing);
            @growing = @growing[grep { $true[$_] } 0 .. $#growing];
            $k{$_}++ for @growing;
        }
        @slots = all_succeed(sub { halves(scalar @_) }, { map { $_ => $k{$_} * ($k{$_} - 1) } @slots }, @slots);
        my %x = map { $_ => deviate() } @slots;
        @slots = all_succeed(sub { try_b(\%k, \%x, @_) }, { map { $_ => $k{$_} + 1 } @slots }, @slots);
        my @negative = bits(whole(1) << 63, scalar @slots);
        next if !@slots;
        my $first = $slots[0];
        return signed((whole($k{$first}) << $places) + ($x{$first}[0] >> (64 - $places)), $negative[0]);
    }
}

sub try_b {
    my ($k, $x, @slots) = @_;
    my %true = map { $_ => 1 } @slots;
    my %last = map { $_ => $x->{$_} } @slots;
    my @falling = @slots;
    while (@falling) {
        my %next = map { $_ => deviate() } @falling;
        @falling = grep { less($next{$_}, $last{$_}) } @falling;
        my %on = map { $_ => 1 } try_c($k, $x, @falling);
        @falling = grep { $on{$_} } @falling;
        $true{$_} ^= 1 for @falling;
        @last{@falling} = @next{@falling};
    }
    return @true{@slots};
}

sub try_c {    # the slots for which C is true
    my ($k, $x, @slots) = @_;
    my %drawn;
    my @open = @slots;
    while (@open) {
        my @bounds = map { 2 * $k->{$_} + 2 } @open;
        my ($widest) = sort { $b <=> $a } @bounds;
        @drawn{@open} = cut_words($widest, @bounds);
        @open = grep { $drawn{$_} >= 2 * $k->{$_} + 2 } @open;
    }
    my %tie = map { $_ => deviate() } grep { $drawn{$_} == 2 * $k->{$_} } @slots;
    return grep { $tie{$_} ? less($tie{$_}, $x->{$_}) : $drawn{$_} < 2 * $k->{$_} } @slots;
}

# ---- what is drawn from the secret, and hash functions

my ($own, $context, $drawn_for);

sub kept {    # the first n words of the secret for a label and a value
    my ($label, $value, $n) = @_;
    my $name = "$context $label";
    $value = $value < 0 ? $value + $two_to_64 : $value;
    my @hashed = ('ldp-budget memoised words 1', length $name, $name, length $own, $own, word($value));
    return shake_words(136, pack('a* Q< a* Q< a* Q<', @hashed), $n);
}

my $prime = (whole(1) << 61) - 1;
my (%keys, %coefficients);

sub polynomial {
    my ($seed, $j, $v, $m) = @_;
    my $key = $keys{$seed} //= blake2b($seed, 32, person => 'ldp-budget seed');
    my ($a, $b, $c) = @{ $coefficients{"$seed $j"} //= [
        map { whole($_) % $prime }
            unpack 'Q<3', blake2b(pack('Q<', word($j)), 24, key => $key, person => 'coefficients')
    ] };
    my $x = whole(unpack 'Q<', blake2b("$v", 8, key => $key, person => 'value')) % $prime;
    return $m * ((($a * $x + $b) * $x + $c) % $prime) >> 61;
}

sub bloom {
    my ($seed, $j, $v, $m, $n) = @_;
    my @bits = (0) x $m;
    $bits[$_ % $m] = 1 for shake_words(168, "ldp-budget bloom 1:$seed:$j:$v", $n);
    return @bits;
}

# ---- the operators

my %draws = (    # of numbers; lists are vectors
    bit => sub { (bits($_[0], 1))[0] },
    bits => sub { [bits(@_)] },
    bit_at => sub { (bits($_[0], 1, 1))[0] },
    bits_each => sub { [map { bits($_, 1) } @{ $_[0] }] },
    below => sub { (belows($_[0], 1))[0] },
    belows => sub { [belows(@_)] },
    belows_from => sub { my ($b, $n) = @_; [map { belows($b + $_, 1) } 0 .. $n - 1] },
    subset => sub { [subset(map { word($_) } @_)] },
    shuffle => sub { [shuffle(@{ $_[0] })] },
    geometric => \&geometric,
    laplace => \&laplace,
    normal => \&normal,
);

my %named = (    # the first argument is a text
    kept_bits => sub { my ($label, $v, $t, $n) = @_; [map { whole($_) < $t ? 1 : 0 } kept($label, $v, $n)] },
    kept_belows => sub {
        my ($label, $v, $b, $n) = @_;
        my @words = kept($label, $v, $n);
        return [map { whole($words[$_]) % ($b + $_) } 0 .. $n - 1];
    },
    kept_top => sub { my ($label, $v, $k) = @_; (kept($label, $v, 1))[0] >> (64 - $k) },
    polynomial => \&polynomial,
    bloom => sub { [bloom(@_)] },
);

sub must { my ($holds) = @_; die "the specification defines no such step\n" if !$holds }

sub within {    # a number that is checked
    my ($x, $least, $most) = @_;
    must(whole($x) >= $least && whole($x) <= $most);
    return $x;
}

sub flags { within($_, 0, 1) for @{ $_[0] }; $_[0] }

my $huge = whole(2)**4096;
my $half = whole(2)**63;
my %ranges = (    # of the arguments of draws and hashes, without their text
    bit => [[0, $two_to_64]], bits => [[0, $two_to_64], [0, 2**23]], bit_at => [[0, $two_to_64 - 1]],
    below => [[1, $half]], belows => [[1, $half], [0, 2**23]], belows_from => [[1, $half], [0, 2**23]],
    subset => [[1, $half], [0, 2**23]], geometric => [[0, $two_to_64 - 1]], laplace => [[0, 40]], normal => [[0, 40]],
    kept_bits => [[-$half, $half - 1], [0, $two_to_64], [0, 2**23]],
    kept_belows => [[-$half, $half - 1], [1, $half], [0, 2**23]], kept_top => [[-$half, $half - 1], [0, 64]],
    polynomial => [[0, $two_to_64 - 1], [-$huge, $huge], [1, $half]],
    bloom => [[-$huge, $huge], [-$huge, $huge], [1, 2**23], [0, 2**16]], onehot => [[-$huge, $huge], [0, 2**23]],
);

my %numbers = (    # place by place
    add => sub { $_[0] + $_[1] },
    sub => sub { $_[0] - $_[1] },
    mul => sub { $_[0] * $_[1] },
    div => sub { scalar $_[0]->copy->bdiv(within($_[1], 1, $huge)) },
    mod => sub { $_[0]->copy->bmod(within($_[1], 1, $huge)) },
    shr => sub { scalar $_[0]->copy->bdiv(whole(2)**within($_[1], 0, 2**16)) },
    shl => sub { $_[0] * whole(2)**within($_[1], 0, 2**16) },
    and => sub { within($_[0], 0, $huge) & within($_[1], 0, $huge) },
    xor => sub { within($_[0], 0, $huge) ^ within($_[1], 0, $huge) },
    min => sub { $_[0] < $_[1] ? $_[0] : $_[1] },
    max => sub { $_[0] > $_[1] ? $_[0] : $_[1] },
    lt => sub { $_[0] < $_[1] ? 1 : 0 },
    ge => sub { $_[0] >= $_[1] ? 1 : 0 },
    eq => sub { $_[0] == $_[1] ? 1 : 0 },
    where => sub { within($_[0], 0, 1) == 1 ? $_[1] : $_[2] },
    parity => sub { within($_[0], 0, $huge)->as_bin =~ tr/1// % 2 },
);

my %vectors = (
    list => sub { [@_] },
    at => sub { $_[0][within($_[1], 0, $#{ $_[0] })] },
    put => sub { my ($vector, $i, $a) = @_; my @new = @$vector; $new[within($i, 0, $#new)] = $a; \@new },
    sort => sub { [sort { $a <=> $b } @{ $_[0] }] },
    first => sub { my $bits = flags($_[0]); (grep { $bits->[$_] == 1 } 0 .. $#$bits)[0] // 0 },
    rank => \&rank,
    onehot => sub { my ($i, $n) = @_; within($i, 0, $n - 1); [map { $_ == $i ? 1 : 0 } 0 .. $n - 1] },
    join => sub { my $sum = whole(0); $sum = 2 * $sum + $_ for reverse @{ flags($_[0]) }; $sum },
    floyd => sub {
        my ($vector, $b) = @_;
        my (@new, %seen);
        for my $entry (@$vector) {
            push @new, $seen{$entry} ? $b - 1 + @new : $entry;
            $seen{ $new[-1] } = 1;
        }
        return \@new;
    },
);

sub rank {
    my ($vector, $a) = @_;
    must($vector->[$_ - 1] <= $vector->[$_]) for 1 .. $#$vector;
    my ($low, $high) = (0, scalar @$vector);    # those before low are <= a, those from high on are > a
    while ($low < $high) {
        my $middle = ($low + $high) >> 1;
        if ($vector->[$middle] <= $a) { $low = $middle + 1 } else { $high = $middle }
    }
    return $low;
}

# ---- a program

sub exact { my ($x) = @_; ref $x eq 'ARRAY' ? [map { exact($_) } @$x] : ref $x ? $x : whole($x) }

sub over_places {
    my ($name, $operator, @arguments) = @_;
    my ($vector, @others) = grep { ref eq 'ARRAY' } @arguments;
    return $operator->(@arguments) if !$vector;
    must(@$_ == @$vector) for @others;
    if (!@$vector) {    # numbers next to vectors without entries are checked all the same
        my ($first, $last) = map { ref eq 'ARRAY' ? undef : $_ } @arguments[0, -1];
        within($last, 1, $huge) if $name =~ /^(?:div|mod)$/ && defined $last;
        within($last, 0, 2**16) if $name =~ /^sh[lr]$/ && defined $last;
        within($first, 0, 1) if $name eq 'where' && defined $first;
        if ($name =~ /^(?:and|xor)$/) { within($_, 0, $huge) for grep { defined } $first, $last }
    }
    return [map { my $i = $_; $operator->(map { ref eq 'ARRAY' ? $_->[$i] : $_ } @arguments) } 0 .. $#$vector];
}

sub evaluate {
    my ($expression, $known) = @_;
    return $expression =~ /^-?[0-9]+\z/ ? whole($expression) : $known->{$expression} if !ref $expression;
    my ($name, @arguments) = @$expression;
    my @text = $named{$name} ? shift @arguments : ();
    @arguments = (@text, map { evaluate($_, $known) } @arguments);
    if ($numbers{$name}) {
        my $found = exact(over_places($name, $numbers{$name}, @arguments));
        within($_, 1 - $huge, $huge - 1) for ref $found eq 'ARRAY' ? @$found : $found;
        return $found;
    }
    my $operator = $draws{$name} // $named{$name} // $vectors{$name};
    my @numbers = @arguments[scalar(@text) .. $#arguments];
    my $ranges = $ranges{$name} // [];
    within($numbers[$_], @{ $ranges->[$_] }) for 0 .. $#$ranges;
    must($numbers[1] <= $numbers[0]) if $name eq 'subset';
    return exact($operator->(@arguments));
}

sub table {
    my ($table) = @_;
    return exact($table) if ref $table ne 'HASH';
    my ($digits, $floor) = ($table->{digits}, whole($table->{floor}));
    my ($ratio, $ratio_places) = decimal($table->{ratio});
    my ($s, $places) = decimal($table->{first});
    my @totals = (whole(0));
    for (1 .. $table->{count}) {
        my $w = $places > 0 ? whole(substr('0' x $places . $s->bstr, 0, -$places)) : $s * whole(10)**-$places;
        push @totals, $totals[-1] + ($w > $floor ? $w : $floor);
        my $text = ($s * $ratio)->bstr;
        $places += $ratio_places;
        my $cut = length($text) - $digits;
        if ($cut > 0) { $text = substr $text, 0, $digits; $places -= $cut }
        $s = whole($text);
    }
    return \@totals;
}

sub decimal {    # its digits, and how many of them stand after the point
    my ($integer, $fraction, $exponent) = $_[0] =~ /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
        or die "no decimal: $_[0]\n";
    $fraction //= '';
    return (whole("$integer$fraction"), length($fraction) - ($exponent // 0));
}

sub double { (POSIX::strtod("$_[0]"))[0] }

my $ends = '[\s\x{1c}-\x{1f}\x{85}\x{ad}\x{61c}\x{180e}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}'
    . '\x{2066}-\x{2069}\x{feff}]+';

sub canonical_text { NFC("$_[0]") =~ s/\A$ends|$ends\z//gr }

sub value {    # the whole number of an answer
    my ($definition, $answer) = @_;
    my $input = $definition->{input};
    $answer = canonical_text($answer);
    if ($input->{kind} eq 'answer') {
        my $names = $definition->{answers};
        if ($names) { ($answer) = grep { canonical_text($names->[$_]) eq $answer } 0 .. $#$names }
        elsif ($input->{text} && length $answer && $answer !~ /^(?:0|-?[1-9][0-9]*)\z/) {
            my $digest = blake2b(encode_utf8($answer), 8, person => 'ldp-budget text');
            $answer = whole(unpack 'Q<', $digest) % whole($input->{count});
        }
        die "no answer\n" if ($answer // '') !~ /^[0-9]+\z/ || whole($answer) >= whole($input->{count});
        return whole($answer);
    }
    if ($input->{kind} eq 'word') {
        my $bytes = encode_utf8($answer);
        my $length = $input->{length};
        die "no answer\n" if !length $bytes || length $bytes > $length || $bytes =~ /\0/;
        return Math::BigInt->from_hex('0x' . unpack 'H*', $bytes . "\0" x ($length - length $bytes));
    }
    die "no answer\n" if double($answer) < double($input->{lower}) || double($answer) > double($input->{upper});
    my $above = double($answer) - double($input->{lower});
    my $number = whole(sprintf '%.0f', $input->{times}
        ? $above * double($input->{times}) : POSIX::floor($above / double($input->{step})));
    return $number < 0 ? whole(0) : $number > $input->{last} ? whole($input->{last}) : $number;
}

sub report_part {
    my ($known, $kind, $name, @shape) = @_;
    my @vector = ref $known->{$name} eq 'ARRAY' ? @{ $known->{$name} } : $known->{$name};
    if ($kind ne 'float64') {
        must(@vector == $shape[-1]);
        within($_, 0, $kind eq 'packed' ? 1 : whole(256)**$shape[0] - 1) for @vector;
    }
    if ($kind eq 'uint') { return join '', map { substr pack('Q<', word($_)), 0, $shape[0] } @vector }
    if ($kind eq 'packed') { return pack 'b*', join '', @vector }
    my ($origin, $step, $plus) = @shape;
    my $double = double($origin) + double($vector[0] + $plus) * double($step);
    must($double - $double == 0);
    return pack 'd<', $double;
}

sub report {
    my ($definition, $tables, $answer) = @_;
    $context = $definition->{context};
    my %known = (%$tables, value => value($definition, $answer));
    for my $step (@{ $definition->{steps} }) { $known{ $step->[0] } = evaluate($step->[1], \%known) }
    $drawn_for = $known{ $definition->{memo} } if $definition->{memo};
    return join '', map { report_part(\%known, @$_) } @{ $definition->{report}{parts} };
}

# ---- a whole definition: its digest, the secret of the collection, and the labels of its reports

sub secret_within {
    my ($secret, $purpose) = @_;
    return blake2b($purpose, 32, key => sha256($secret), person => 'ldp-budget');
}

sub label { unpack 'H*', blake2b("$drawn_for", 16, key => secret_within($own, "$context labels")) }

my %parts = map { $_ => 1 } qw(uint packed float64);

sub check_program {    # dies of what this client does not know
    my ($definition) = @_;
    my ($format, $version) = @$definition{qw(format version)};
    die "expected version 1 of an ldp-budget client\n" if $format ne 'ldp-budget client' || $version ne '1';
    my %known = map { $_ => 1 } 'value', keys %{ $definition->{tables} };
    for my $step (@{ $definition->{steps} }) {
        check_expression($step->[1], \%known, 1);
        $known{ $step->[0] } = 1;
    }
    for my $part (@{ $definition->{report}{parts} }) {
        die "no part $part->[0]\n" if !$parts{ $part->[0] };
        check_expression($part->[1], \%known);
    }
}

sub check_expression {
    my ($expression, $known, $top) = @_;
    if (!ref $expression) { return $expression =~ /^-?[0-9]+\z/ || $known->{$expression} || die "no $expression\n" }
    my ($name, @arguments) = @$expression;
    die "no operator $name\n" if !grep { $_->{$name} } \%draws, \%named, \%numbers, \%vectors;
    die "$name stands alone at the top of a step\n" if !$top && ($draws{$name} || $name =~ /^kept_/);
    shift @arguments if $named{$name};
    check_expression($_, $known) for @arguments;
}

sub check_digest {
    my %rest = %{ $_[0] };
    my $digest = delete $rest{digest};
    my $canonical = JSON::PP->new->canonical->ascii->encode(\%rest) =~ s/\x7f/\\u007f/gr;
    die "expected another digest\n" if $digest ne sha256_hex($canonical);
}

# ---- the vectors

my ($folder) = @ARGV or die "usage: client.pl FOLDER\n";
my ($count, $differ) = (0, 0);
for my $path (sort glob "$folder/*.json") {
    open my $file, '<:raw', $path or die "$path: $!\n";
    my $case = JSON::PP->new->utf8->allow_bignum->decode(do { local $/; <$file> });
    my $definition = $case->{definition};
    check_digest($definition) if $definition->{digest};
    check_program($definition);
    my $tables = { map { $_ => table($definition->{tables}{$_}) } keys %{ $definition->{tables} } };
    for my $vector (@{ $case->{vectors} }) {
        ($stream, $position) = (pack('H*', $vector->{stream}), 0);
        $own = pack 'H*', $vector->{secret} // '';
        $own = secret_within($own, "collection $definition->{fingerprint}") if $definition->{digest};
        my $report = eval { unpack 'H*', report($definition, $tables, $vector->{answer}) } // "an error: $@";
        $report .= ' labelled ' . label() if $vector->{label} && $vector->{label} ne label();
        $report .= sprintf ' after %d of %d bytes', $position, length $stream if $position != length $stream;
        $count++;
        next if $report eq $vector->{report};
        $differ++;
        print "$path: the answer $vector->{answer} gives $report, and not $vector->{report}\n";
    }
}
print "$count vectors\n";
exit($differ || !$count ? 1 : 0);
