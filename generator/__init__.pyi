from generator.library import File as File
from generator.library import Finding as Finding
from generator.library import Place as Place
from generator.library import Severity as Severity
from generator.library import Site as Site
from generator.library import SiteFile as SiteFile
from generator.library import Tree as Tree
from generator.library import parse as parse
from generator.library import read as read

__version__: str
