// Amounts of memory: made from numbers and from text, and shown to people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trainyard/bytes.h"  // IWYU pragma: export

namespace trainyard {

constexpr Bytes kib(std::int64_t count) { return {count << 10}; }
constexpr Bytes mib(std::int64_t count) { return {count << 20}; }
constexpr Bytes gib(std::int64_t count) { return {count << 30}; }
constexpr Bytes mb(std::int64_t count) { return {count * 1'000'000}; }
constexpr Bytes gb(std::int64_t count) { return {count * 1'000'000'000}; }

/// Reads an amount with a unit: B, kB (KB), MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB and
/// the Slurm forms K, M, G, T are powers of 1024. A fraction ("2.5GB") and a space before the unit
/// are fine. Bits ("8gb", "8Gb"), a bare number under 1 MiB, a negative amount and one over 8 EiB
/// are errors that say what was probably meant. A bare number of 1 MiB or more is bytes, and so is
/// a bare 0.
Result<Bytes> parse_bytes(std::string_view text);

/// For people: at most one decimal and a decimal unit, as in "3.1 GB", "512 MB", "0 B".
std::string to_text(Bytes bytes);

/// The same beside another amount: in bytes where both would read the same and are not.
std::string to_text(Bytes bytes, Bytes other);

/// The same without the space, as a user types it, and rounded down: what parse_bytes() reads from
/// it is never more than `bytes`, as in "18.3GB".
std::string text_at_most(Bytes bytes);

}  // namespace trainyard
