// Whatever bytes stand in the file, or behind a checksum that is right: what is read can be noted
// again and means the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "process/end_notes.h"
#include "process/end_reader.h"

namespace {

using trainyard::process::EndNote;

std::string noted_again(const EndNote& note) {
  return trainyard::process::end_note_record(trainyard::process::end_note_head(note),
                                             note.ended.left);
}

void read(std::string_view bytes) {
  for (const EndNote& note : trainyard::process::read_end_notes(bytes)) {
    const std::string once = noted_again(note);
    const std::vector<EndNote> same = trainyard::process::read_end_notes(once);
    trainyard::check(same.size() == 1, "one note of our own");
    trainyard::check(noted_again(same.front()) == once, "the same note twice");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  read(input);
  // Few inputs have a checksum that is right.
  read(trainyard::process::end_note_record(input, {}));
  return 0;
}
