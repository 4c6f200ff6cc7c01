"""Frozen definitions of BPMN 2.0's process vocabulary, in the standard's words."""

from __future__ import annotations

from trioflow.model.activities import *
from trioflow.model.base import *
from trioflow.model.common import *
from trioflow.model.data import *
from trioflow.model.events import *
from trioflow.model.flow import *
from trioflow.model.gateways import *
from trioflow.model.process import *
from trioflow.model.findings import *
from trioflow.model.graph import *
from trioflow.model.builder import DefinitionsBuilder as DefinitionsBuilder, ProcessBuilder as ProcessBuilder
from trioflow.model.checks import check as check
from trioflow.model.digest import DIGEST_ALGORITHM as DIGEST_ALGORITHM, shape_digest as shape_digest
