// cpu.hpp - instruction sets as the kernels here ask for them; detection lives in base.
#pragma once

#include "base/cpu.hpp"
