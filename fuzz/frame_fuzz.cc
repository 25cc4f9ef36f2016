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
  std::vector<trainyard::wire::Frame> frames;
  std::string error;

  friend bool operator==(const Read&, const Read&) = default;
};

Read read(std::string_view bytes, std::size_t piece) {
  trainyard::wire::FrameReader reader;
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
bool same(const trainyard::wire::TaskReport& report, const trainyard::wire::TaskReport& again) {
  const auto* const word = std::get_if<trainyard::wire::StageWord>(&report);
  if (word == nullptr) return report == again;
  const auto& other = std::get<trainyard::wire::StageWord>(again);
  return word->said == other.said && word->message == other.message;
}

void check_fields(const std::string& fields) {
  if (const auto hello = trainyard::wire::read_hello(fields)) {
    check(trainyard::wire::read_hello(trainyard::wire::to_fields(*hello)).value() == *hello,
          "the same hello");
    check(trainyard::wire::answer(*hello, "s").ok ==
              (hello->version == trainyard::wire::kProtocolVersion),
          "the same version");
  }
  if (const auto welcome = trainyard::wire::read_welcome(fields);
      welcome && (!welcome->ok || welcome->error.empty())) {
    check(trainyard::wire::read_welcome(trainyard::wire::to_fields(*welcome)).value() == *welcome,
          "the same answer to a hello");
  }
  // As many buffers as a submission has, cut from the same bytes.
  const std::vector<std::string> buffers{std::string(fields.substr(0, fields.size() / 2)),
                                         std::string(fields.substr(fields.size() / 2))};
  if (const auto request = trainyard::wire::read_request(fields, buffers)) {
    check(trainyard::wire::read_request(trainyard::wire::to_fields(*request),
                                        trainyard::wire::to_buffers(*request))
                  .value() == *request,
          "the same request");
  }
  if (const auto reply = trainyard::wire::read_reply(fields)) {
    const auto again = trainyard::wire::read_reply(trainyard::wire::to_fields(*reply));
    check(again && again->outcome == reply->outcome && reply->text.starts_with(again->text),
          "the same reply, perhaps cut");
  }
  if (const auto report = trainyard::wire::read_report(fields)) {
    const auto* const word = std::get_if<trainyard::wire::StageWord>(&*report);
    const bool nonsense = word != nullptr && word->said == trainyard::model::Said::Nonsense;
    const auto again = trainyard::wire::read_report(trainyard::wire::to_fields(*report));
    check(again.has_value(), "a report that is read again");
    // What nobody understood is not written as it was.
    check(nonsense || same(*report, *again), "the same report");
  }
  if (const auto order = trainyard::wire::read_order(fields)) {
    check(trainyard::wire::read_order(trainyard::wire::to_fields(*order)).value() == *order,
          "the same order");
  }
  static_cast<void>(trainyard::wire::read_failure(fields));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Read whole = read(bytes, bytes.size());
  check(read(bytes, 1 + (data[0] % 64U)) == whole, "the same frames however they are split");
  std::string again;
  for (const trainyard::wire::Frame& frame : whole.frames) {
    const auto encoded = trainyard::wire::encode(frame);
    check(encoded.has_value(), "a frame within the limits");
    again += *encoded;
    check_fields(frame.fields);
  }
  check(bytes.starts_with(again), "the same bytes");
  // The fields alone, too: the way there through a frame is narrow.
  check_fields(std::string(bytes));
  return 0;
}
