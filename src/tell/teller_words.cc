#include "tell/teller_words.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "base/match.h"
#include "sys/packing.h"

namespace trainyard::tell {
namespace {

constexpr std::uint8_t kBegin = 0;
constexpr std::uint8_t kPost = 1;
constexpr std::uint8_t kMail = 2;
constexpr std::uint8_t kFinish = 3;

BeginWord unpack_begin(sys::Unpacking& from) {
  BeginWord word;
  word.run.job = from.text();
  if (const auto number = from.number<std::uint32_t>(); number != 0) word.run.number = number;
  word.run.directory = from.text();
  word.run.host = from.text();
  word.if_it_dies = from.text();
  return word;
}

}  // namespace

std::string pack(const TellerWord& word) {
  sys::Packing packing;
  match(
      word,
      [&packing](const BeginWord& it) {
        packing.add(kBegin);
        packing.add(it.run.job);
        packing.add(it.run.number.value_or(0));
        packing.add(it.run.directory);
        packing.add(it.run.host);
        packing.add(it.if_it_dies);
      },
      [&packing](const PostWord& it) {
        packing.add(kPost);
        packing.add(it.what);
        packing.add(it.body);
      },
      [&packing](const MailWord& it) {
        packing.add(kMail);
        packing.add(it.group.value);
      },
      [&packing](const FinishWord& it) {
        packing.add(kFinish);
        packing.add(it.what);
        packing.add(it.body);
      });
  return std::move(packing).take();
}

TellerWord unpack(std::string_view bytes) {
  sys::Unpacking from(bytes);
  const auto kind = from.number<std::uint8_t>();
  if (kind == kBegin) return unpack_begin(from);
  if (kind == kMail) return MailWord{.group = {from.number<std::uint32_t>()}};
  std::string what = from.text();
  std::string body = from.text();
  if (kind == kPost) return PostWord{.what = std::move(what), .body = std::move(body)};
  return FinishWord{.what = std::move(what), .body = std::move(body)};
}

}  // namespace trainyard::tell
