// What a worker and its router say to each other, as whoever is at the other end may have written
// it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "wire/worker.h"

using trainyard::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = trainyard::wire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto report = wire::read_worker_report(text)) {
    check(wire::read_worker_report(wire::to_fields(*report)) == *report, "a report again");
  }
  if (const auto request = wire::read_worker_request(text)) {
    check(wire::read_worker_request(wire::to_fields(*request)) == *request, "a request again");
  }
  if (const auto reply = wire::read_worker_reply(text)) {
    check(wire::read_worker_reply(wire::to_fields(*reply)) == *reply, "a reply again");
  }
  if (const auto order = wire::read_worker_order(text)) {
    check(wire::read_worker_order(wire::to_fields(*order)) == *order, "an order again");
  }
  if (const auto shapes = wire::read_shapes(text)) {
    check(wire::shapes_text(*shapes) == text, "the shapes again");
  }
  return 0;
}
