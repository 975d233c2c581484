"""The services beside the engine."""

from generator.services.modules import GATEWAY as GATEWAY
from generator.services.modules import PROXY as PROXY
from generator.services.modules import QOS as QOS
from generator.services.modules import SERVICES as SERVICES
from generator.services.modules import WEB_UI as WEB_UI
from generator.services.modules import host as host
from generator.services.modules import images as images
from generator.services.modules import requested as requested
