"""How do page states and questions become multi-vectors?"""
