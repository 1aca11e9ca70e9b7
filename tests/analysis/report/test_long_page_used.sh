#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Time limit: 900 s
# test_page_used.sh with every cause that the bar offers, and with labels over more curves, of more messages.
THOROUGH=1 exec bash tests/analysis/report/test_page_used.sh
