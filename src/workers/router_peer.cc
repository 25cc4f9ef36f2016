#include "workers/router_peer.h"

#include <algorithm>

namespace trainyard::workers {

std::string word_text(const wire::Frame& word) {
  return wire::encode(word, wire::kWorkerLimits).value_or(std::string());
}

void RouterPeer::add_word(const wire::Frame& word) { outbox.add_word(word_text(word)); }

bool RouterPeer::has_room_for(const std::vector<int>& workers) const {
  return outbox.has_room() && std::ranges::none_of(workers, [this](int worker) {
           const auto credit = credits.find(worker);
           return credit != credits.end() && !credit->second.has_room();
         });
}

std::vector<int> RouterPeer::full_workers() const {
  std::vector<int> all;
  for (const auto& [number, workers] : waits_for) {
    all.insert(all.end(), workers.begin(), workers.end());
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace trainyard::workers
