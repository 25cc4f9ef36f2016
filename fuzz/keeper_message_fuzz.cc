// Whatever bytes come: the reader hands out messages or refuses, and what it hands out can be said
// again and means the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/match.h"
#include "process/keeper.h"
#include "process/keeper_message.h"

namespace {

using namespace trainyard::process;  // NOLINT(google-build-using-namespace)

std::string said_again(const trainyard::process::KeeperMessage& message) {
  std::string bytes;
  trainyard::match(
      message,
      [&](const trainyard::process::StartMessage& it) {
        trainyard::check(trainyard::process::append_start(bytes, it.key, it.launch).has_value(),
                         "a launch that fits");
      },
      [&](const trainyard::process::SignalMessage& it) {
        trainyard::process::append_signal(bytes, it);
      },
      [&](const trainyard::process::ProcessStarted& it) {
        trainyard::process::append_started(bytes, it);
      },
      [&](const trainyard::process::ProcessEnded& it) {
        trainyard::process::append_ended(bytes, it);
      },
      [&](const trainyard::process::RankFailed& it) {
        trainyard::process::append_rank_failed(bytes, it);
      },
      [&](const trainyard::process::KeeperNote& it) { trainyard::process::append_note(bytes, it); },
      [&](const trainyard::process::LeaseMessage& it) {
        trainyard::process::append_lease(bytes, it);
      },
      [&](const trainyard::process::RemoveMessage& it) {
        trainyard::process::append_remove(bytes, it);
      },
      [&](const trainyard::process::Pulse&) { trainyard::process::append_pulse(bytes); },
      [&](const trainyard::process::EndNotes& it) { trainyard::process::append_notes(bytes, it); },
      [&](const trainyard::process::WrittenMessage& it) {
        trainyard::process::append_written(bytes, it);
      },
      [&](const trainyard::process::Farewell&) { trainyard::process::append_farewell(bytes); });
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  trainyard::process::KeeperMessageReader reader;
  // In two pieces, cut where the input says.
  const std::size_t cut = size == 0 ? 0 : data[0] % size;
  for (const std::string_view piece : {input.substr(0, cut), input.substr(cut)}) {
    reader.add(piece);
    for (;;) {
      const auto message = reader.next();
      if (!message) return 0;
      if (!*message) break;
      const std::string once = said_again(**message);
      trainyard::process::KeeperMessageReader again;
      again.add(once);
      const auto same = again.next();
      trainyard::check(same.has_value() && same->has_value(), "a message of our own");
      trainyard::check(said_again(**same) == once, "the same message twice");
    }
  }
  return 0;
}
