// What somebody is typing for a shell when asking how it may go on.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/shell_quote.h"
#include "text/typed_line.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using trainyard::check;
  constexpr std::string_view kBreaks = " \t\n\"'@><=;|&(:";
  const std::string line(reinterpret_cast<const char*>(data), size);
  const trainyard::text::TypedLine read = trainyard::text::read_typed_line(line, kBreaks);
  check(read.stays <= read.word.size(), "what stays is of the word");
  // A word that begins where the cursor stands is read back as what was offered for it.
  if (!read.word.empty() || line.ends_with('\\') || read.open != trainyard::text::Quoting::Word)
    return 0;
  const std::string again = line + trainyard::text::as_typed(line, read);
  const trainyard::text::TypedLine back = trainyard::text::read_typed_line(again, kBreaks);
  check(line.contains('\n') || back.word == line, "what is offered is what bash reads");
  return 0;
}
