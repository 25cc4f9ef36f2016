// Amounts of memory as people write them, one rule a test.
#include "base/bytes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace trainyard {
namespace {

std::int64_t bytes_of(std::string_view text) {
  const Result<Bytes> bytes = parse_bytes(text);
  EXPECT_TRUE(bytes.has_value()) << text << ": " << (bytes ? "" : bytes.error().message);
  return bytes ? bytes->count : -1;
}

std::string mistake_in(std::string_view text) {
  const Result<Bytes> bytes = parse_bytes(text);
  EXPECT_FALSE(bytes.has_value()) << text << " was read as " << (bytes ? bytes->count : 0);
  return bytes ? "" : bytes.error().message;
}

TEST(Bytes, ReadsDecimalUnitsAsPowersOfAThousand) {
  EXPECT_EQ(bytes_of("7B"), 7);
  EXPECT_EQ(bytes_of("1kB"), 1000);
  EXPECT_EQ(bytes_of("1KB"), 1000);
  EXPECT_EQ(bytes_of("4GB"), 4'000'000'000);
  EXPECT_EQ(bytes_of("2.5 GB"), 2'500'000'000);
  EXPECT_EQ(bytes_of("1TB"), 1'000'000'000'000);
}

TEST(Bytes, ReadsBinaryUnitsAndSlurmsFormsAsPowersOf1024) {
  EXPECT_EQ(bytes_of("1KiB"), 1024);
  EXPECT_EQ(bytes_of("1GiB"), 1'073'741'824);
  EXPECT_EQ(bytes_of("1.5MiB"), 1'572'864);
  EXPECT_EQ(bytes_of("16G"), 17'179'869'184);
  EXPECT_EQ(bytes_of("1T"), 1'099'511'627'776);
}

TEST(Bytes, ReadsABareNumberOfAMebibyteAndMoreAsBytes) {
  EXPECT_EQ(bytes_of("1048576"), 1'048'576);
  EXPECT_EQ(bytes_of("0"), 0);
}

TEST(Bytes, SaysWhatABareSmallNumberProbablyMeans) {
  EXPECT_EQ(mistake_in("1"), "'1' has no unit and would be 1 byte (did you mean '1GB' or '1MB'?)");
  EXPECT_EQ(mistake_in("4"), "'4' has no unit and would be 4 bytes (did you mean '4GB' or '4MB'?)");
}

TEST(Bytes, SuggestsOnlyWhatAMachineMayHave) {
  EXPECT_EQ(mistake_in("8192"),
            "'8192' has no unit and would be 8192 bytes (did you mean '8192MB'?)");
  EXPECT_EQ(mistake_in("1048575"),
            "'1048575' has no unit and would be less than 1 MiB; write the unit, as in '1048575B'");
}

TEST(Bytes, SaysHowASizeIsWritten) {
  for (const std::string_view text : {"1e9", "1E+9", "2.5e-3GB"}) {
    EXPECT_EQ(mistake_in(text),
              fmt::format("'{}' is not a valid size; write it with a unit, as in '1GB'", text));
  }
  EXPECT_EQ(
      mistake_in("1eB"),
      "'1eB': unknown unit 'eB'; use B, kB, MB, GB, TB, or KiB, MiB, GiB, TiB (also K, M, G, T)");
}

TEST(Bytes, SaysThatBitsAreNotBytes) {
  EXPECT_EQ(mistake_in("8gb"), "'8gb' is in bits: write '8GB'");
  EXPECT_EQ(mistake_in("8Mb"), "'8Mb' is in bits: write '8MB'");
  EXPECT_EQ(mistake_in("8kb"), "'8kb' is in bits: write it in bytes, as in '8GB' or '8MiB'");
}

TEST(Bytes, SaysWhatAnUnknownUnitProbablyMeans) {
  EXPECT_EQ(mistake_in("1gib"), "'1gib': unknown unit 'gib' (did you mean '1GiB'?)");
  EXPECT_EQ(mistake_in("4Gi"), "'4Gi': unknown unit 'Gi' (did you mean '4GiB'?)");
  EXPECT_EQ(mistake_in("1.5Ki"), "'1.5Ki': unknown unit 'Ki' (did you mean '1.5KiB'?)");
  EXPECT_EQ(mistake_in("12gigs"),
            "'12gigs': unknown unit 'gigs'; use B, kB, MB, GB, TB, or KiB, MiB, GiB, TiB (also K, "
            "M, G, T)");
}

TEST(Bytes, RefusesWhatIsNoAmount) {
  EXPECT_EQ(mistake_in("much"), "'much' is not a valid size; write it as in '4GB'");
  EXPECT_EQ(mistake_in(""), "'' is not a valid size; write it as in '4GB'");
  EXPECT_EQ(mistake_in("4,5GB"), "'4,5GB' has a comma; write decimals with a point, as in '4.5GB'");
  EXPECT_EQ(mistake_in("-1GB"), "'-1GB': a size cannot be negative");
  EXPECT_EQ(mistake_in("99999999999TB"), "'99999999999TB' is more than any machine has");
}

TEST(Bytes, AreToldToPeopleInDecimalUnits) {
  EXPECT_EQ(to_text(Bytes{0}), "0 B");
  EXPECT_EQ(to_text(Bytes{999}), "999 B");
  EXPECT_EQ(to_text(mb(512)), "512 MB");
  EXPECT_EQ(to_text(Bytes{3'140'000'000}), "3.1 GB");
  EXPECT_EQ(to_text(Bytes{999'960'000}), "1 GB");
  EXPECT_EQ(to_text(gb(24)), "24 GB");
}

TEST(Bytes, OfBinaryUnitsAreToldInDecimalOnes) {
  EXPECT_EQ(to_text(Bytes{bytes_of("4G")}), "4.3 GB");
  EXPECT_EQ(to_text(Bytes{bytes_of("4GiB")}), "4.3 GB");
}

TEST(Bytes, AreToldApart) {
  EXPECT_EQ(to_text(Bytes{1'048'577}, mib(1)), "1048577 bytes");
  EXPECT_EQ(to_text(mib(1), Bytes{1'048'577}), "1048576 bytes");
  EXPECT_EQ(to_text(mb(5), mib(1)), "5 MB");
  EXPECT_EQ(to_text(mb(1), mb(1)), "1 MB");
}

TEST(Bytes, ThatMayBeRequestedAreRoundedDown) {
  EXPECT_EQ(text_at_most(gb(18)), "18GB");
  EXPECT_EQ(text_at_most(Bytes{18'370'000'000}), "18.3GB");
  EXPECT_EQ(text_at_most(Bytes{18'340'000'000}), "18.3GB");
  EXPECT_EQ(text_at_most(Bytes{1'870'000'000}), "1.8GB");
  EXPECT_EQ(text_at_most(Bytes{512'700'000'000}), "512GB");
  EXPECT_EQ(text_at_most(Bytes{999'970'000'000}), "999GB");
  EXPECT_EQ(text_at_most(Bytes{1700}), "1kB");
  EXPECT_EQ(text_at_most(Bytes{999}), "999B");
}

}  // namespace
}  // namespace trainyard
