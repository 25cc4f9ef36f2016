// Whatever bytes come: the reader gives the same frames and the same error however they are split,
// a frame is written as it was read, and what its fields mean is written and read again as the
// same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "model/event.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/task.h"

namespace {

using namespace trainyard::wire;  // NOLINT(google-build-using-namespace): all of this is about it.
using trainyard::check;

struct Read {
  std::vector<Frame> frames;
  std::string error;

  friend bool operator==(const Read&, const Read&) = default;
};

Read read(std::string_view bytes, std::size_t piece) {
  FrameReader reader;
  Read read;
  while (!bytes.empty() && read.error.empty()) {
    reader.add(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (true) {
      auto frame = reader.next();
      if (!frame) read.error = frame.error().message;
      if (!frame || !*frame) break;
      read.frames.push_back(std::move(**frame));
    }
  }
  return read;
}

/// A result that was warned of is not sent again; half a character at the cut of a long traceback
/// is mended.
bool same(const TaskReport& report, const TaskReport& again) {
  const auto* const word = std::get_if<StageWord>(&report);
  if (word == nullptr) return report == again;
  const auto& other = std::get<StageWord>(again);
  return word->said == other.said && word->message == other.message;
}

void check_fields(const std::string& fields) {
  if (const auto hello = read_hello(fields)) {
    check(read_hello(to_fields(*hello)).value() == *hello, "the same hello");
    check(answer(*hello, "s").ok == (hello->version == kProtocolVersion), "the same version");
  }
  if (const auto welcome = read_welcome(fields);
      welcome && (!welcome->ok || welcome->error.empty())) {
    check(read_welcome(to_fields(*welcome)).value() == *welcome, "the same answer to a hello");
  }
  if (const auto request = read_request(fields)) {
    check(read_request(to_fields(*request)).value() == *request, "the same request");
  }
  if (const auto reply = read_reply(fields)) {
    const auto again = read_reply(to_fields(*reply));
    check(again && again->outcome == reply->outcome && reply->text.starts_with(again->text),
          "the same reply, perhaps cut");
  }
  if (const auto report = read_report(fields)) {
    const auto* const word = std::get_if<StageWord>(&*report);
    const bool nonsense = word != nullptr && word->said == trainyard::Said::Nonsense;
    const auto again = read_report(to_fields(*report));
    check(again.has_value(), "a report that is read again");
    // What nobody understood is not written as it was.
    check(nonsense || same(*report, *again), "the same report");
  }
  if (const auto order = read_order(fields)) {
    check(read_order(to_fields(*order)).value() == *order, "the same order");
  }
  static_cast<void>(read_failure(fields));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Read whole = read(bytes, bytes.size());
  check(read(bytes, 1 + (data[0] % 64U)) == whole, "the same frames however they are split");
  std::string again;
  for (const Frame& frame : whole.frames) {
    const auto encoded = encode(frame);
    check(encoded.has_value(), "a frame within the limits");
    again += *encoded;
    check_fields(frame.fields);
  }
  check(bytes.starts_with(again), "the same bytes");
  // The fields alone, too: the way there through a frame is narrow.
  check_fields(std::string(bytes));
  return 0;
}
