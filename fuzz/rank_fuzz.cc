// What a rank and its parent say to each other, as whoever is at the other end may have written it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "wire/rank.h"

using trainyard::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto request = trainyard::wire::read_rank_request(text)) {
    check(trainyard::wire::read_rank_request(trainyard::wire::to_fields(*request)).has_value(),
          "a request again");
  }
  if (const auto reply = trainyard::wire::read_rank_reply(text)) {
    check(trainyard::wire::read_rank_reply(trainyard::wire::to_fields(*reply)).has_value(),
          "a reply again");
  }
  if (const auto word = trainyard::wire::read_rank_word(text)) {
    check(trainyard::wire::read_rank_word(trainyard::wire::to_fields(*word)).has_value(),
          "a word again");
  }
  return 0;
}
