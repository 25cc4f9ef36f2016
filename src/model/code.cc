#include "model/code.h"

#include <cstddef>

namespace trainyard::model {

std::string to_text(const Code& code) {
  constexpr std::size_t kDigitsOfCommit = 7;
  constexpr std::size_t kDigitsOfChanges = 6;
  std::string text = code.commit.substr(0, kDigitsOfCommit);
  if (!code.changes.empty()) text += "+" + code.changes.substr(0, kDigitsOfChanges);
  return text;
}

}  // namespace trainyard::model
