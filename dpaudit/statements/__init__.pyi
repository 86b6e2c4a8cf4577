from dpaudit.statements.ledger import STATEMENTS as STATEMENTS
from dpaudit.statements.ledger import find_statement as find_statement
from dpaudit.statements.ledger import markdown_table as markdown_table
from dpaudit.statements.sample_monotone import SampleMonotoneCheck as SampleMonotoneCheck
from dpaudit.statements.sample_monotone import check_sample_monotone as check_sample_monotone
from dpaudit.statements.statement import Finding as Finding
from dpaudit.statements.statement import Standing as Standing
from dpaudit.statements.statement import Statement as Statement

__all__: list[str]
