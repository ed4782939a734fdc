# Flags and helpers shared by every target.

# glyd_target(name): C++20, warnings, hidden symbols.
function(glyd_target name)
  target_compile_features(${name} PUBLIC cxx_std_20)
  set_target_properties(${name} PROPERTIES
    CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wconversion -Wshadow -Wno-missing-field-initializers>
    $<$<AND:$<BOOL:${GLYD_DEVELOPER}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>)
  # g++ 12 sees overlaps in std::string at -O3 that are not there (GCC bug 105329).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  # Sums must not depend on the compiler's mood: no contraction, no fast math, anywhere.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endfunction()

# glyd_layer(folder SOURCES ... DEPENDS ...): the object library glyd_<folder>, seeing only src/ and its dependencies.
function(glyd_layer folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(glyd_${folder} STATIC ${ARG_SOURCES})
  glyd_target(glyd_${folder})
  target_include_directories(glyd_${folder} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(glyd_${folder} PUBLIC ${ARG_DEPENDS})
endfunction()

# glyd_cpu_source(file FLAGS ...): one source file compiled for an instruction set, reached by run-time dispatch only.
function(glyd_cpu_source file)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    string(REPLACE ";" " " flags "${ARGN}")
    set_source_files_properties(${file} PROPERTIES COMPILE_FLAGS "${flags}")
  endif()
endfunction()
set(GLYD_AVX2_FLAGS -mavx2 -mfma -mbmi2 -mlzcnt -mpopcnt)
set(GLYD_AVX512_FLAGS ${GLYD_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512bf16)
if(GLYD_FUZZ)
  # clang 14 takes many minutes over the AVX-512 products with sanitizers; the fuzzers' guard pages watch these files' reads and writes instead.
  list(APPEND GLYD_AVX512_FLAGS -fno-sanitize=all)
endif()
set(GLYD_AMX_FLAGS ${GLYD_AVX512_FLAGS} -mamx-tile -mamx-bf16)
