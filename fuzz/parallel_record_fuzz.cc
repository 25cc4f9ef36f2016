// What lies in the directory of a task as the record of a parallel run, whoever wrote it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "wire/parallel_record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = trainyard::wire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto record = wire::read_parallel_record(text)) {
    trainyard::check(wire::read_parallel_record(wire::to_text(*record)) == *record,
                     "a record again");
  }
  return 0;
}
