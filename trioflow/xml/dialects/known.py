"""The dialects that are recognised, and what each is recognised by."""

from __future__ import annotations

from typing import Final

from attrs import frozen

__all__ = ["DIALECTS", "Dialect"]


@frozen(kw_only=True)
class Dialect:
    """One vendor's way of writing BPMN: the beginnings of its namespaces and of its tools' names."""

    name: str
    namespaces: tuple[str, ...]
    exporters: tuple[str, ...] = ()

    def declared_in(self, namespaces: frozenset[str]) -> bool:
        """Whether a document that declares these namespaces is of this dialect."""
        return any(uri.startswith(self.namespaces) for uri in namespaces)

    def exported_by(self, exporter: str) -> bool:
        """Whether the tool of that name writes this dialect."""
        return bool(self.exporters) and exporter.lower().startswith(self.exporters)


DIALECTS: Final = (
    Dialect(name="zeebe", namespaces=("http://camunda.org/schema/zeebe/",)),
    Dialect(name="operaton", namespaces=("http://operaton.org/schema/",)),
    Dialect(name="camunda7", namespaces=("http://camunda.org/schema/1.0/bpmn",)),
    Dialect(name="flowable", namespaces=("http://flowable.org/bpmn",), exporters=("flowable",)),
    Dialect(name="activiti", namespaces=("http://activiti.org/bpmn",), exporters=("activiti",)),
    Dialect(
        name="jbpm",
        namespaces=("http://www.jboss.org/drools",),
        exporters=("jbpm", "kie", "org.kie", "org.jbpm"),
    ),
    Dialect(name="olive", namespaces=("http://olive.io/spec/BPMN",)),
    Dialect(name="processmaker", namespaces=("http://processmaker.com/BPMN",), exporters=("processmaker",)),
    Dialect(name="flowsforapex", namespaces=("https://flowsforapex.org",), exporters=("flows for apex",)),
    Dialect(name="signavio", namespaces=("http://www.signavio.com",), exporters=("signavio",)),
    Dialect(name="trisotech", namespaces=("http://www.trisotech.com/", "http://trisotech.com/")),
    Dialect(name="bizagi", namespaces=("http://www.bizagi.com/",), exporters=("bizagi",)),
    Dialect(name="aris", namespaces=("http://www.softwareag.com/aris",), exporters=("aris",)),
    Dialect(name="visual-paradigm", namespaces=("http://www.visual-paradigm.com/",), exporters=("visual paradigm",)),
    Dialect(name="igrafx", namespaces=("http://www.igrafx.com/",), exporters=("igrafx",)),
    Dialect(name="itp-commerce", namespaces=("http://www.itp-commerce.com/",), exporters=("itp",)),
    Dialect(name="yaoqiang", namespaces=("http://bpmn.sourceforge.net",), exporters=("yaoqiang",)),
)
