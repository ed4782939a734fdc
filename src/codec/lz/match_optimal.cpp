#include "codec/lz/match_finder.hpp"
namespace glyd::codec {
std::unique_ptr<MatchFinder> make_optimal_finder() { return make_double_finder(); }
}  // namespace glyd::codec
