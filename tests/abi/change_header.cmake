# Writes OUTPUT, the public header as another release might have it: with CHANGE=newer each struct that carries its
# own size has two more fields, the first of which would fit into padding, and with CHANGE=older one field less.
file(READ ${INPUT} text)
if(CHANGE STREQUAL "newer")
  string(REGEX REPLACE "\n} (hf_[a-z]+_options|hf_stats|hf_node|hf_histogram);" "\n\tint later_field, later_rest;\n} \\1;" text "${text}")
else()
  string(REGEX REPLACE "\n\t[^\n]+;[^\n]*\n} (hf_[a-z]+_options|hf_stats|hf_node|hf_histogram);" "\n} \\1;" text "${text}")
endif()
file(WRITE ${OUTPUT} "${text}")
