#include "wire/decisions.h"

#include "wire/decision_fields.h"
#include "wire/value_writer.h"

namespace trainyard::wire {

std::string to_text(const model::Decision& decision) {
  std::string text;
  append_value(text, decision);
  return text;
}

}  // namespace trainyard::wire
