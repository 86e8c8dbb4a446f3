"""Forms of other tools: XLSForm is read, SurveyJS is written."""
