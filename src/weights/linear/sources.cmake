# Products from packed weights; included by the list above, whose target they join.
set(linear_dir ${CMAKE_CURRENT_SOURCE_DIR}/linear)
target_sources(glyd_weights PRIVATE
  ${linear_dir}/linear.cpp ${linear_dir}/linear_kernels.cpp ${linear_dir}/linear_scalar.cpp ${linear_dir}/linear_avx2.cpp
  ${linear_dir}/linear_avx512.cpp ${linear_dir}/linear_parts.cpp ${linear_dir}/shifted_record.cpp
  ${linear_dir}/matrix_unit.cpp ${linear_dir}/matrix_kernels_scalar.cpp ${linear_dir}/matrix_kernels_amx.cpp)
glyd_cpu_source(${linear_dir}/linear_avx2.cpp ${GLYD_AVX2_FLAGS})
glyd_cpu_source(${linear_dir}/linear_avx512.cpp ${GLYD_AVX512_FLAGS})
glyd_cpu_source(${linear_dir}/matrix_kernels_amx.cpp ${GLYD_AMX_FLAGS})
