// Whatever stands in another user's promise file.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"
#include "base/result.h"
#include "model/promises.h"
#include "wire/promises_text.h"

namespace {

void look_at(std::string_view text) {
  using trainyard::check;
  namespace wire = trainyard::wire;
  const trainyard::Result<trainyard::model::Promises> read = wire::promises_from(text);
  if (!read) return check(!read.error().message.empty(), "an error that says something");
  check(!read->ticket.empty(), "a ticket");
  check(read->name.size() <= wire::kPromiseNameMax, "a name within its limit");
  for (const auto* held : {&read->held, &read->claimed}) {
    check(held->cards.size() <= wire::kPromiseCardsMax, "cards within their limit");
    check(held->memory >= trainyard::Bytes{} && held->unused <= held->memory, "a part of it");
  }
  const auto again = wire::promises_from(wire::to_text(*read));
  check(again && *again == *read, "what was read is written so that it is read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  look_at(text);
  if (const std::optional<std::string_view> inside = trainyard::wire::unsealed(text)) {
    look_at(*inside);
  }
  static_cast<void>(trainyard::wire::neighbours_from(text));
  const auto drains = trainyard::wire::drains_from(text);
  trainyard::check(trainyard::wire::drains_from(trainyard::wire::to_text(drains)) == drains,
                   "drains are read back");
  return 0;
}
