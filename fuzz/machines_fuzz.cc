// What machines of one run say to each other, where whoever may publish on their subjects has
// written it; and what people write of where they are met.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "workers/datagram.h"
#include "workers/machine_words.h"
#include "workers/nats_address.h"
#include "workers/place.h"

using trainyard::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace workers = trainyard::workers;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto datagram = workers::read_datagram(text)) {
    const std::string again = workers::datagram_text(*datagram);
    check(workers::read_datagram(again).has_value(), "a datagram again");
  }
  if (const auto word = workers::read_machine_word(text)) {
    check(workers::read_machine_word(workers::to_fields(*word)) == *word, "a word again");
  }
  if (const auto hello = workers::read_machine_hello(text)) {
    check(workers::read_machine_hello(workers::to_fields(*hello)) == *hello, "a greeting again");
  }
  if (const auto welcome = workers::read_machine_welcome(text)) {
    check(workers::read_machine_welcome(workers::to_fields(*welcome)) == *welcome,
          "a welcome again");
  }
  if (const auto note = workers::read_reply_note(text)) {
    check(workers::read_reply_note(workers::to_fields(*note)) == *note, "a note again");
  }
  if (const auto place = workers::read_place(text)) {
    check(workers::read_place(workers::place_text(*place)) == *place, "a place again");
  }
  if (const auto address = workers::read_nats_address(text)) {
    check(workers::read_nats_address(address->url).has_value(), "an address again");
  }
  return 0;
}
