"""Creates a site file from what people already run, with the place of each part in their files."""

from generator.adoption.adoption import Adoption as Adoption
from generator.adoption.adoption import adopt as adopt
