#include "capi/doctor_verdicts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace glyd::capi {
namespace {

using ::testing::HasSubstr;

DoctorFindings hopper() { return {"avx512", true, {{"NVIDIA H200", 9, 0}}, true, 1, true}; }

std::map<std::string, nlohmann::ordered_json> by_product(const DoctorFindings& found) {
  std::map<std::string, nlohmann::ordered_json> rows;
  for (const auto& row : doctor_verdicts(found)) rows[row["product"].get<std::string>()] = row;
  return rows;
}

TEST(DoctorVerdicts, EverythingIsThere) {
  const auto rows = by_product(hopper());
  EXPECT_EQ(gpu_obstacle(hopper()), "");
  EXPECT_EQ(rows.at("linear, exact (GPU)")["exact"], true);
  EXPECT_EQ(rows.at("linear, any order (GPU)")["exact"], false);
  EXPECT_EQ(rows.at("linear, exact=True (CPU, Python)")["exact"], true);
  EXPECT_THAT(rows.at("linear, exact=False (CPU)")["runs"].get<std::string>(), HasSubstr("avx512"));
}

TEST(DoctorVerdicts, EachThingMissingIsNamed) {
  DoctorFindings found = hopper();
  found.has_driver = false;
  EXPECT_THAT(gpu_obstacle(found), HasSubstr("driver"));
  found = hopper();
  found.gpus.clear();
  EXPECT_THAT(gpu_obstacle(found), HasSubstr("no GPU"));
  found = hopper();
  found.gpus = {{"NVIDIA L40S", 8, 9}};
  EXPECT_EQ(gpu_obstacle(found), "NVIDIA L40S has compute capability 8.9, and only 9.0 (Hopper) is served");
  found = hopper();
  found.has_glyd_cuda = false;
  EXPECT_THAT(gpu_obstacle(found), HasSubstr("libglyd_cuda is not found"));
  found = hopper();
  found.glyd_cuda_abi.reset();
  EXPECT_THAT(gpu_obstacle(found), HasSubstr("no such library"));
  found.glyd_cuda_abi = 2;
  EXPECT_THAT(gpu_obstacle(found), HasSubstr("ABI 2"));
}

TEST(DoctorVerdicts, AProductThatDoesNotRunIsNeitherExactNorNot) {
  DoctorFindings found = hopper();
  found.has_driver = false;
  auto rows = by_product(found);
  EXPECT_TRUE(rows.at("linear, exact (GPU)")["exact"].is_null());
  EXPECT_TRUE(rows.at("linear, any order (GPU)")["exact"].is_null());
  found = hopper();
  found.has_cublas = false;
  rows = by_product(found);
  EXPECT_TRUE(rows.at("linear, exact (GPU)")["exact"].is_null());
  EXPECT_EQ(rows.at("linear, any order (GPU)")["exact"], false);
}

}  // namespace
}  // namespace glyd::capi
