#include "workers/router_peer.h"

#include <string>

#include "wire/frame.h"
#include "wire/worker.h"

namespace trainyard::workers {

std::string word_text(const wire::Frame& word) {
  return wire::encode(word, wire::kWorkerLimits).value_or(std::string());
}

void RouterPeer::add_word(const wire::Frame& word) { outbox.add_word(word_text(word)); }

}  // namespace trainyard::workers
