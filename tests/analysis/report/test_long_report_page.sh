#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Time limit: 900 s
# Pages of many thousand messages are used as test_report_page.sh uses those of few.
THOROUGH=1 exec bash tests/analysis/report/test_report_page.sh
