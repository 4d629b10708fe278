# Compiler and linker flags for every target.
add_compile_options(-Wall -Wextra -Wshadow -Wpointer-arith -Wvla
  "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>")
if(HF_WERROR)
  add_compile_options(-Werror)
endif()

# The definition is empty, so that a file with its own #define _GNU_SOURCE defines the same.
add_compile_options($<$<COMPILE_LANGUAGE:C>:-D_GNU_SOURCE=>)

if(HF_SANITIZE)
  add_compile_options(-fsanitize=${HF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HF_SANITIZE})
endif()
if(HF_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
